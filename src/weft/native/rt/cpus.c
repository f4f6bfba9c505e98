/* What processors there are to use, and what they have. */
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

#include "internal.h"

#define TEXT 4096 /* longest control file or path that is looked at */

void weft_read_text(const char *path, char *text, int64_t room) {
  FILE *file = fopen(path, "r");
  size_t length = 0;
  if (file != NULL) {
    length = fread(text, 1, (size_t)room - 1, file);
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
  weft_read_text(path, text, TEXT);
  return sscanf(text, "%lld %lld", &quota, &period) == 2 ? whole_cpus(quota, period) : 0;
}

/* Version 1: a file for each figure, -1 for no quota. */
static int32_t quota_v1(const char *mount) {
  char path[3 * TEXT], quota[TEXT], period[TEXT];
  (void)snprintf(path, sizeof path, "%s/cpu/cpu.cfs_quota_us", mount);
  weft_read_text(path, quota, TEXT);
  (void)snprintf(path, sizeof path, "%s/cpu/cpu.cfs_period_us", mount);
  weft_read_text(path, period, TEXT);
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
  weft_read_text("/proc/self/cgroup", membership, TEXT);
  cpus = least(affinity_cpus(), weft_quota_cpus("/sys/fs/cgroup", membership));
  return cpus < 1 ? 1 : cpus > WEFT_MAX_THREADS ? WEFT_MAX_THREADS : cpus;
}

int32_t weft_threads(int32_t requested) {
  int32_t cpus = requested == 1 ? 1 : weft_cpus();
  return requested > 0 && requested < cpus ? requested : cpus;
}

int32_t weft_has_feature(const char *cpuinfo, const char *feature) {
  const char *at = strstr(cpuinfo, "\nflags");
  size_t length = 0;
  if (at == NULL) at = strstr(cpuinfo, "\nFeatures");
  if (at == NULL) return 1;
  for (at += strcspn(at, ":") + 1; *at != 0 && *at != '\n'; at += length + (at[length] == ' ')) {
    length = strcspn(at, " \n");
    if (length == strlen(feature) && strncmp(at, feature, length) == 0) return 1;
  }
  return 0;
}

#endif
typedef int weft_cpus_is_not_empty; /* ISO C forbids an empty file */
