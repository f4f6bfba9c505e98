/* How many processors there are to use. */
#ifndef WEFT_FREESTANDING
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif

#include "weft.h"

#define TEXT 4096 /* longest control file or path that is looked at */

/* Reads a small file as text; an unreadable one is empty. */
static void read_text(const char *path, char *text) {
  FILE *file = fopen(path, "r");
  size_t length = 0;
  if (file != NULL) {
    length = fread(text, 1, TEXT - 1, file);
    (void)fclose(file);
  }
  text[length] = 0;
}

static int32_t whole_cpus(long long quota, long long period) {
  if (quota <= 0 || period <= 0) return 0;
  return (int32_t)((quota - 1) / period + 1);
}

static int32_t least(int32_t a, int32_t b) { return a == 0 ? b : b == 0 || a < b ? a : b; }

/* Version 2: one file, "max 100000" or "150000 100000". */
static int32_t quota_of(const char *group) {
  char path[3 * TEXT], text[TEXT];
  long long quota, period;
  (void)snprintf(path, sizeof path, "%s/cpu.max", group);
  read_text(path, text);
  return sscanf(text, "%lld %lld", &quota, &period) == 2 ? whole_cpus(quota, period) : 0;
}

/* Version 1: a file for each figure, -1 for no quota. */
static int32_t quota_v1(const char *mount) {
  char path[3 * TEXT], quota[TEXT], period[TEXT];
  (void)snprintf(path, sizeof path, "%s/cpu/cpu.cfs_quota_us", mount);
  read_text(path, quota);
  (void)snprintf(path, sizeof path, "%s/cpu/cpu.cfs_period_us", mount);
  read_text(path, period);
  return whole_cpus(atoll(quota), atoll(period));
}

int32_t weft_quota_cpus(const char *mount, const char *membership) {
  char group[2 * TEXT];
  const char *own = strstr(membership, "0::");
  int32_t cpus = least(quota_v1(mount), quota_of(mount));
  size_t length = own == NULL ? 0 : strcspn(own + 3, "\n");
  size_t root = strlen(mount);
  if (length == 0 || length + root >= TEXT) return cpus;
  (void)snprintf(group, sizeof group, "%s%.*s", mount, (int)length, own + 3);
  while (strlen(group) > root) {
    cpus = least(cpus, quota_of(group));
    *strrchr(group, '/') = 0;
  }
  return cpus;
}

static int32_t affinity_cpus(void) {
#ifdef __linux__
  cpu_set_t sets[8]; /* room for 8192 processors: the kernel refuses a mask smaller than its own */
  if (sched_getaffinity(0, sizeof sets, sets) == 0) return CPU_COUNT_S(sizeof sets, sets);
#endif
  return (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
}

int32_t weft_cpus(void) {
  char membership[TEXT];
  int32_t cpus;
  read_text("/proc/self/cgroup", membership);
  cpus = least(affinity_cpus(), weft_quota_cpus("/sys/fs/cgroup", membership));
  return cpus < 1 ? 1 : cpus > WEFT_MAX_THREADS ? WEFT_MAX_THREADS : cpus;
}

int32_t weft_threads(int32_t requested) {
  int32_t cpus = requested == 1 ? 1 : weft_cpus();
  return requested > 0 && requested < cpus ? requested : cpus;
}

#endif
typedef int weft_cpus_is_not_empty; /* ISO C forbids an empty file */
