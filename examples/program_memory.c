/* SPDX-License-Identifier: BSD-3-Clause */
/* How much memory a process can still get on Linux: what the machine has to spare, what the limits of its
 * control groups (versions 1 and 2) leave, and what its own limit of addresses leaves. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The number behind `key` on the line that begins with it, or the file's first number if key is ""; -1 if
 * there is none. */
static double read_number(const char *folder, const char *file, const char *key) {
  char path[PATH_MAX + 64], line[256];
  double number = -1;
  snprintf(path, sizeof path, "%s/%s", folder, file);
  FILE *f = fopen(path, "r");
  if (!f) return -1;
  while (number < 0 && fgets(line, sizeof line, f)) {
    const size_t length = strlen(key);
    char *end = line + length;
    if (strncmp(line, key, length) == 0) number = strtod(line + length, &end);
    if (end == line + length) number = -1;
  }
  fclose(f);
  return number;
}

/* The files of a control group. Memory that only holds pages of files is given back when it is wanted. */
typedef struct group_files {
  const char *line;  /* begins that line of /proc/self/cgroup which names the group */
  const char *mount; /* of all groups */
  const char *limit, *used, *pages;
} group_files;

static const group_files versions[] = {
    {"0::", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file "}};

static double room_in_group(const char *folder, const group_files *files) {
  const double limit = read_number(folder, files->limit, ""), used = read_number(folder, files->used, "");
  if (limit < 0 || used < 0) return INFINITY;
  return fmax(limit - used + fmax(read_number(folder, "memory.stat", files->pages), 0), 0);
}

/* A group has the limits of all groups that it is in; those that cannot be seen from here are left out. */
static double room_in_groups(const char *root, const char *group, const group_files *files) {
  char folder[PATH_MAX];
  const int mount = snprintf(folder, sizeof folder, "%s%s", root, files->mount);
  const int length = snprintf(folder, sizeof folder, "%s%s%s", root, files->mount, group);
  double room = INFINITY;
  if (length >= (int)sizeof folder) return room;
  for (char *end = folder + length; end && end >= folder + mount; end = strrchr(folder, '/')) {
    *end = 0;
    room = fmin(room, room_in_group(folder, files));
  }
  return room;
}

static double room_in_all_groups(const char *root) {
  char path[PATH_MAX], line[PATH_MAX];
  double room = INFINITY;
  snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  FILE *f = fopen(path, "r");
  while (f && fgets(line, sizeof line, f)) {
    line[strcspn(line, "\n")] = 0;
    for (size_t v = 0; v < sizeof versions / sizeof *versions; v++) {
      const char *found = strstr(line, versions[v].line);
      if (found) room = fmin(room, room_in_groups(root, found + strlen(versions[v].line), &versions[v]));
    }
  }
  if (f) fclose(f);
  return room;
}

double ex_available_below(const char *root) {
  const double machine = 1024 * read_number(root, "proc/meminfo", "MemAvailable:");
  return fmin(machine < 0 ? INFINITY : machine, room_in_all_groups(root));
}

double ex_available_memory(void) {
  struct rlimit addresses;
  double room = ex_available_below("");
  if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY) {
    const double used = read_number("/proc/self", "statm", "") * (double)sysconf(_SC_PAGESIZE);
    room = fmin(room, fmax((double)addresses.rlim_cur - used, 0));
  }
  return isinf(room) ? (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) : room;
}
