/* How many processors there are to use: those of the affinity mask, bounded by the quotas of control groups, of version 2 and of
 * version 1 (RHEL 8 and older clusters have that). A quota of a group binds the groups below it, so that the least counts. */
#ifndef WEFT_FREESTANDING
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif

#include "internal.h"

#define TEXT 4096 /* longest line or path that is looked at */

/* A hierarchy of groups: where it is mounted, and which group of it is the top of what is mounted there. */
typedef struct hierarchy {
  char mount[2 * TEXT], top[TEXT];
} hierarchy;

/* The first line of a file, which is empty where there is none. */
static void read_line(const char *folder, const char *name, char *text) {
  char path[4 * TEXT];
  FILE *file;
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  file = fopen(path, "r");
  if (file == NULL || fgets(text, TEXT, file) == NULL) *text = 0;
  if (file != NULL) (void)fclose(file);
}

static int32_t whole_cpus(long long quota, long long period) {
  if (quota <= 0 || period <= 0) return 0;
  quota = (quota - 1) / period + 1;
  return quota < WEFT_MAX_THREADS ? (int32_t)quota : WEFT_MAX_THREADS;
}

static int32_t least(int32_t a, int32_t b) { return a == 0 ? b : b == 0 || a < b ? a : b; }

/* Version 2: one file, "max 100000" or "150000 100000". */
static int32_t quota_of_v2(const char *group) {
  char text[TEXT];
  long long quota, period;
  read_line(group, "cpu.max", text);
  return sscanf(text, "%lld %lld", &quota, &period) == 2 ? whole_cpus(quota, period) : 0;
}

/* Version 1: a file for each figure, -1 for no quota. */
static int32_t quota_of_v1(const char *group) {
  char quota[TEXT], period[TEXT];
  read_line(group, "cpu.cfs_quota_us", quota);
  read_line(group, "cpu.cfs_period_us", period);
  return whole_cpus(atoll(quota), atoll(period));
}

/* Whether a word is one of those of a list, which commas part. */
static int has_word(const char *list, const char *word) {
  size_t length = strlen(word);
  for (; *list != 0; list += strcspn(list, ","), list += *list == ',')
    if (strcspn(list, ",\n") == length && strncmp(list, word, length) == 0) return 1;
  return 0;
}

/* Finds where a version's hierarchy is mounted, as /proc/self/mountinfo tells: "36 35 0:31 TOP MOUNT rw - cgroup cgroup rw,cpu". */
static int find_mount(const char *root, int version, hierarchy *found) {
  char path[2 * TEXT], line[TEXT], mount[TEXT], kind[64], options[TEXT];
  FILE *file;
  int done = 0;
  (void)snprintf(path, sizeof path, "%s/proc/self/mountinfo", root);
  file = fopen(path, "r");
  while (file != NULL && !done && fgets(line, sizeof line, file) != NULL) {
    const char *rest = strstr(line, " - ");
    if (rest == NULL || sscanf(rest, " - %63s %*s %4095s", kind, options) != 2) continue;
    if (strcmp(kind, version == 2 ? "cgroup2" : "cgroup") != 0 || (version == 1 && !has_word(options, "cpu"))) continue;
    if (sscanf(line, "%*s %*s %*s %4095s %4095s", found->top, mount) != 2) continue;
    (void)snprintf(found->mount, sizeof found->mount, "%s%s", root, mount);
    done = 1;
  }
  if (file != NULL) (void)fclose(file);
  return done;
}

/* The path of a group below the mount: a container sees its own group, or one above it, as the top; others it does not see. */
static const char *below(const hierarchy *h, const char *group) {
  size_t length = strlen(h->top);
  if (strstr(group, "/..") != NULL) return "";
  if (strcmp(h->top, "/") == 0) return group;
  return strncmp(group, h->top, length) == 0 && (group[length] == '/' || group[length] == 0) ? group + length : "";
}

/* The least quota from a group up to the mount; a group that is not there has none. */
static int32_t least_on_the_way(const hierarchy *h, const char *group, int32_t (*quota_of)(const char *)) {
  char at[3 * TEXT];
  size_t root = strlen(h->mount);
  int32_t cpus = quota_of(h->mount);
  (void)snprintf(at, sizeof at, "%s%s", h->mount, below(h, group));
  for (; strlen(at) > root; *strrchr(at, '/') = 0) cpus = least(cpus, quota_of(at));
  return cpus;
}

static int32_t quota_in(const char *root, int version, const char *group) {
  static const char *const USUAL[] = {"", "/cpu", "/cpu,cpuacct", "/cpuacct,cpu"};
  hierarchy h = {"", "/"};
  int32_t cpus = 0;
  if (find_mount(root, version, &h)) return least_on_the_way(&h, group, version == 2 ? quota_of_v2 : quota_of_v1);
  for (int k = version == 2 ? 0 : 1; k < (version == 2 ? 1 : 4) && cpus == 0; k++) {
    (void)snprintf(h.mount, sizeof h.mount, "%s/sys/fs/cgroup%s", root, USUAL[k]);
    cpus = least_on_the_way(&h, group, version == 2 ? quota_of_v2 : quota_of_v1);
  }
  return cpus;
}

/* Its groups are in /proc/self/cgroup: "0::/a" is version 2, "4:cpu,cpuacct:/b" version 1. The tops count in any case. */
int32_t weft_quota_cpus(const char *root) {
  char path[2 * TEXT], line[TEXT];
  int32_t cpus = least(quota_in(root, 1, ""), quota_in(root, 2, ""));
  FILE *file;
  (void)snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  file = fopen(path, "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    char *controllers = strchr(line, ':'), *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (group == NULL) continue;
    *group++ = 0;
    group[strcspn(group, "\n")] = 0;
    if (controllers[1] == 0) cpus = least(cpus, quota_in(root, 2, group));
    else if (has_word(controllers + 1, "cpu")) cpus = least(cpus, quota_in(root, 1, group));
  }
  if (file != NULL) (void)fclose(file);
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
  int32_t cpus = least(affinity_cpus(), weft_quota_cpus(""));
  return cpus < 1 ? 1 : cpus > WEFT_MAX_THREADS ? WEFT_MAX_THREADS : cpus;
}

int32_t weft_threads(int32_t requested) {
  int32_t cpus = requested == 1 ? 1 : weft_cpus();
  return requested > 0 && requested < cpus ? requested : cpus;
}

#endif
typedef int weft_cpus_is_not_empty; /* ISO C forbids an empty file */
