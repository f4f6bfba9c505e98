/* What the processor can do, asked of itself: CPUID on x86, which needs no system and can't be hidden as /proc can; on Arm the
 * system's answer, AT_HWCAP. A feature whose registers the system does not save (XCR0), or refuses to this process, is one that
 * programs do not have. Where nothing can be asked, nothing is there. */
#include <stddef.h>

#include "internal.h"

typedef struct feature { /* Linux's name, and the bit of weft_processor's words that tells */
  const char *name;
  uint8_t word, bit, needs;
} feature;

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)

#include <cpuid.h>

/* needs: registers that the system must save, by the bits of XCR0 */
enum { NONE, YMM, ZMM, TILE };
static const uint64_t STATES[] = {[NONE] = 0, [YMM] = 0x6, [ZMM] = 0xe6, [TILE] = 0x60000};

/* words */
enum { C1, D1, B7, C7, D7, A71, C8, D8 };

static const feature FEATURES[] = {
    {"fpu", D1, 0, NONE}, {"tsc", D1, 4, NONE}, {"cx8", D1, 8, NONE}, {"cmov", D1, 15, NONE}, {"mmx", D1, 23, NONE},
    {"fxsr", D1, 24, NONE}, {"sse", D1, 25, NONE}, {"sse2", D1, 26, NONE}, {"pni", C1, 0, NONE}, {"pclmulqdq", C1, 1, NONE},
    {"ssse3", C1, 9, NONE}, {"cx16", C1, 13, NONE}, {"sse4_1", C1, 19, NONE}, {"sse4_2", C1, 20, NONE},
    {"movbe", C1, 22, NONE}, {"popcnt", C1, 23, NONE}, {"aes", C1, 25, NONE}, {"rdrand", C1, 30, NONE},
    {"hypervisor", C1, 31, NONE}, {"lahf_lm", C8, 0, NONE}, {"abm", C8, 5, NONE}, {"sse4a", C8, 6, NONE},
    {"3dnowprefetch", C8, 8, NONE}, {"lm", D8, 29, NONE}, {"fsgsbase", B7, 0, NONE}, {"bmi1", B7, 3, NONE},
    {"bmi2", B7, 8, NONE}, {"erms", B7, 9, NONE}, {"adx", B7, 19, NONE}, {"clflushopt", B7, 23, NONE},
    {"clwb", B7, 24, NONE}, {"sha_ni", B7, 29, NONE}, {"gfni", C7, 8, NONE}, {"rdpid", C7, 22, NONE},
    {"serialize", D7, 14, NONE},
    {"avx", C1, 28, YMM}, {"f16c", C1, 29, YMM}, {"fma", C1, 12, YMM}, {"avx2", B7, 5, YMM}, {"vaes", C7, 9, YMM},
    {"vpclmulqdq", C7, 10, YMM}, {"avx_vnni", A71, 4, YMM}, {"avx_ifma", A71, 23, YMM}, {"xop", C8, 11, YMM},
    {"fma4", C8, 16, YMM},
    {"avx512f", B7, 16, ZMM}, {"avx512dq", B7, 17, ZMM}, {"avx512ifma", B7, 21, ZMM}, {"avx512cd", B7, 28, ZMM},
    {"avx512bw", B7, 30, ZMM}, {"avx512vl", B7, 31, ZMM}, {"avx512vbmi", C7, 1, ZMM}, {"avx512_vbmi2", C7, 6, ZMM},
    {"avx512_vnni", C7, 11, ZMM}, {"avx512_bitalg", C7, 12, ZMM}, {"avx512_vpopcntdq", C7, 14, ZMM},
    {"avx512_vp2intersect", D7, 8, ZMM}, {"avx512_fp16", D7, 23, ZMM}, {"avx512_bf16", A71, 5, ZMM},
    {"amx_bf16", D7, 22, TILE}, {"amx_tile", D7, 24, TILE}, {"amx_int8", D7, 25, TILE}, {"amx_fp16", A71, 21, TILE},
};

static uint64_t saved_states(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low | (uint64_t)high << 32;
}

static void name_maker(weft_processor *p, const uint32_t *words) {
  for (int i = 0; i < 12; i++) p->vendor[i] = (char)(words[i / 4] >> (i % 4 * 8));
}

/* The numbers as Linux and the makers' manuals give them: the extended ones added where they count. */
static void number_model(weft_processor *p, uint32_t signature) {
  uint32_t family = signature >> 8 & 15, model = signature >> 4 & 15;
  if (family == 6 || family == 15) model += (signature >> 16 & 15) << 4;
  if (family == 15) family += signature >> 20 & 255;
  p->family = (int32_t)family;
  p->model = (int32_t)model;
}

/* Linux gives the registers of tiles to a process that asks for them, for all of its threads; elsewhere nobody has them. */
#if defined(__x86_64__) && defined(__linux__)
static int gives_tiles(void) {
  enum { ARCH_PRCTL = 158, ARCH_REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };
  long status;
  __asm__ volatile("syscall"
                   : "=a"(status)
                   : "a"((long)ARCH_PRCTL), "D"((long)ARCH_REQ_XCOMP_PERM), "S"((long)XTILEDATA)
                   : "rcx", "r11", "memory");
  return status == 0;
}
#else
static int gives_tiles(void) { return 0; }
#endif

static void ask(weft_processor *p) {
  uint32_t *w = p->words, a, b, c, d, most = 0;
  if (!__get_cpuid(0, &a, &b, &c, &d)) return;
  name_maker(p, (uint32_t[]){b, d, c});
  if (__get_cpuid(1, &a, &b, &w[C1], &w[D1])) number_model(p, a);
  if (__get_cpuid_count(7, 0, &most, &w[B7], &w[C7], &w[D7]) && most >= 1)
    (void)__get_cpuid_count(7, 1, &w[A71], &b, &c, &d);
  (void)__get_cpuid(0x80000001, &a, &b, &w[C8], &w[D8]);
  if (w[C1] >> 27 & 1) p->states = saved_states(); /* OSXSAVE: the system lets programs ask */
  if ((p->states & STATES[TILE]) && !gives_tiles()) p->states &= ~STATES[TILE];
}

static int lets(const weft_processor *p, const feature *f) { return (p->states & STATES[f->needs]) == STATES[f->needs]; }

#elif (defined(__aarch64__) || defined(__arm__)) && defined(__linux__) && !defined(WEFT_FREESTANDING)

#include <sys/auxv.h>

enum { CAP, CAP2 };

static const feature FEATURES[] = {
#ifdef __aarch64__
    {"fp", CAP, 0, 0}, {"asimd", CAP, 1, 0}, {"aes", CAP, 3, 0}, {"pmull", CAP, 4, 0}, {"sha1", CAP, 5, 0},
    {"sha2", CAP, 6, 0}, {"crc32", CAP, 7, 0}, {"atomics", CAP, 8, 0}, {"fphp", CAP, 9, 0}, {"asimdhp", CAP, 10, 0},
    {"asimdrdm", CAP, 12, 0}, {"jscvt", CAP, 13, 0}, {"fcma", CAP, 14, 0}, {"lrcpc", CAP, 15, 0}, {"dcpop", CAP, 16, 0},
    {"sha3", CAP, 17, 0}, {"asimddp", CAP, 20, 0}, {"sha512", CAP, 21, 0}, {"sve", CAP, 22, 0}, {"asimdfhm", CAP, 23, 0},
    {"dcpodp", CAP2, 0, 0}, {"sve2", CAP2, 1, 0}, {"frint", CAP2, 8, 0}, {"svei8mm", CAP2, 9, 0}, {"svebf16", CAP2, 12, 0},
    {"i8mm", CAP2, 13, 0}, {"bf16", CAP2, 14, 0},
#else
    {"half", CAP, 1, 0}, {"thumb", CAP, 2, 0}, {"vfp", CAP, 6, 0}, {"edsp", CAP, 7, 0}, {"neon", CAP, 12, 0},
    {"vfpv3", CAP, 13, 0}, {"vfpv3d16", CAP, 14, 0}, {"vfpv4", CAP, 16, 0}, {"idiva", CAP, 17, 0}, {"idivt", CAP, 18, 0},
    {"vfpd32", CAP, 19, 0}, {"fphp", CAP, 22, 0}, {"asimdhp", CAP, 23, 0}, {"asimddp", CAP, 24, 0}, {"i8mm", CAP, 27, 0},
    {"aes", CAP2, 0, 0}, {"crc32", CAP2, 4, 0},
#endif
};

static void ask(weft_processor *p) {
  p->words[CAP] = (uint32_t)getauxval(AT_HWCAP);
  p->words[CAP2] = (uint32_t)getauxval(AT_HWCAP2);
}

static int lets(const weft_processor *p, const feature *f) { return (void)p, (void)f, 1; }

#else

static const feature FEATURES[] = {{"", 0, 0, 0}};

static void ask(weft_processor *p) { (void)p; }

static int lets(const weft_processor *p, const feature *f) { return (void)p, (void)f, 0; }

#endif

#define COUNT ((int32_t)(sizeof FEATURES / sizeof *FEATURES))

void weft_processor_read(weft_processor *p) {
  static const weft_processor unknown;
  *p = unknown;
  ask(p);
}

static int has(const weft_processor *p, const feature *f) { return (int)(p->words[f->word] >> f->bit & 1) && lets(p, f); }

int32_t weft_processor_has(const weft_processor *p, const char *name) {
  for (int32_t i = 0; i < COUNT; i++)
    if (weft_same(FEATURES[i].name, name)) return has(p, &FEATURES[i]);
  return 0;
}

const char *weft_processor_feature(int32_t number) { return number < 0 || number >= COUNT ? NULL : FEATURES[number].name; }
