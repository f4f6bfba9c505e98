// The C++ wrapper: load, describe, call, errors both ways. wrapper MODEL
#include "weft.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

static int fail(int line) { return std::fprintf(stderr, "line %d\n", line), 1; }
#define CHECK(condition) \
    if (!(condition)) return fail(__LINE__)

static int bad_input(weft::Context &context, const std::vector<float> &x, const char *wanted) {
#if WEFT_THROWS
    try {
        context({weft::View(x.data(), {5, 23})});
    } catch (const weft::Error &error) {
        return error.status == WEFT_FAILED_ASSERT && std::strcmp(error.what(), wanted) == 0;
    }
    return 0;
#else
    return context({weft::View(x.data(), {5, 23})}).empty() && std::strcmp(context.error().text, wanted) == 0;
#endif
}

static bool no_file() {
#if WEFT_THROWS
    try {
        weft::Model::load("no such file");
    } catch (const std::runtime_error &error) {
        return std::strcmp(error.what(), "there is no such file") == 0;
    }
    return false;
#else
    weft::Model none = weft::Model::load("no such file");
    return !none && none.error().status == WEFT_UNREADABLE;
#endif
}

int main(int argc, char **argv) {
    CHECK(argc == 2 && no_file());
    weft::Model loaded = weft::Model::load(argv[1], {1, WEFT_COPY});
    weft::Model model = std::move(loaded);
    CHECK(model && !loaded);
    CHECK(model.inputs() == 1 && model.outputs() == 1 && std::strcmp(model.input(0).name, "x") == 0);
    CHECK(std::strcmp(model.note("target"), "cpu") == 0 && model.output(0).ndim == 2);
    std::vector<float> x(5 * 24);
    for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
    weft::Context first(model), context(std::move(first));
    CHECK(bad_input(context, x, "input x: dimension 1 is 23, but the model takes 24"));
    std::vector<weft::Array> y = context({weft::View(x.data(), {5, 24})});
    CHECK(y.size() == 1 && y[0].shape() == (weft::Shape{5, 10}) && y[0].dtype() == WEFT_F32 && y[0].size() == 50);
    CHECK(y[0].as<float>() != nullptr && y[0].as<double>() == nullptr && y[0].bytes() == 200);
    std::vector<weft::Array> again = context({weft::View(static_cast<const void *>(x.data()), WEFT_F32, {5, 24})});
    CHECK(std::equal(y[0].as<float>(), y[0].as<float>() + 50, again[0].as<float>()));
    std::fwrite(y[0].data(), 1, static_cast<size_t>(y[0].bytes()), stdout);
    return 0;
}
