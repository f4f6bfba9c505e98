// States from C++: two conversations, a copy, a value that is read and written, and errors both ways. state DECODER
#include "weft.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>

static int fail(int line) { return std::fprintf(stderr, "line %d\n", line), 1; }
#define CHECK(condition) \
    if (!(condition)) return fail(__LINE__)

// The text of the error that a function throws, or that `error` has after it.
template <typename F> static bool fails(F call, const weft_error &error, const char *text) {
#if WEFT_THROWS
    try {
        call();
    } catch (const weft::Error &thrown) {
        return std::strstr(thrown.what(), text) != nullptr && std::strstr(error.text, text) != nullptr;
    }
    return false;
#else
    call();
    return std::strstr(error.text, text) != nullptr;
#endif
}

static bool same(const weft::Array &a, const weft::Array &b) {
    if (a.shape() != b.shape() || a.dtype() != WEFT_F32 || b.dtype() != WEFT_F32) return false;
    for (int64_t i = 0; i < a.size(); i++)
        if (!(std::fabs(a.as<float>()[i] - b.as<float>()[i]) < 1e-4F)) return false;
    return true;
}

static weft::Array say(weft::Context &context, weft::State &state, const int64_t *tokens, int64_t count) {
    return std::move(context(state, {weft::View(tokens, {1, count})})[0]);
}

int main(int argc, char **argv) {
    const int64_t tokens[6] = {3, 1, 4, 1, 5, 9};
    CHECK(argc == 2);
    weft::Model model = weft::Model::load(argv[1]);
    weft::Context context(model);
    weft::State first(model), state(std::move(first)), other(model);
    CHECK(!first && state);
    weft::Array whole = say(context, state, tokens, 3);
    for (int i = 0; i < 2; i++) say(context, other, tokens + i, 1);
    CHECK(same(whole, say(context, other, tokens + 2, 1)));
    CHECK(state.read(0).shape() == (weft::Shape{1, 2, 3, 16}));

    weft::State copy = state.copy();
    weft::Array next = say(context, state, tokens + 3, 1);
    CHECK(copy.read(1).shape()[2] == 3 && state.read(1).shape()[2] == 4);
    CHECK(same(next, say(context, copy, tokens + 3, 1)) && same(copy.read(0), state.read(0)));

    other.reset();
    CHECK(other.read(0).shape()[2] == 0);
    for (int32_t k = 0; k < 2; k++) {
        weft::Array value = state.read(k);
        other.write(k, weft::View(value.data(), WEFT_F32, value.shape()));
    }
    CHECK(same(say(context, state, tokens + 4, 1), say(context, other, tokens + 4, 1)));

    CHECK(fails([&] { context(state, {weft::View(tokens + 5, {1, 1})}); }, context.error(), "has room for 5: it is full"));
    CHECK(fails([&] { state.write(0, weft::View(tokens, {1, 2, 3, 16})); }, state.error(), "of another type or shape"));
    CHECK(fails([&] { state.read(2); }, state.error(), "there is no such state"));
    CHECK(weft_use(context.get(), state.get()) == WEFT_OK);
    CHECK(fails([&] { state.reset(); }, state.error(), "the state is in use by another call"));
    weft::Context second(model);
    CHECK(fails([&] { second(state, {weft::View(tokens, {1, 1})}); }, second.error(), "the state is in use by another call"));
    return weft_use(context.get(), nullptr) == WEFT_OK ? 0 : 1;
}
