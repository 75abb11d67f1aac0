/* What this process holds, to see whether it grows: for programs that make many communicators. Linux. */
#ifndef POLYRING_TESTS_HELD_H
#define POLYRING_TESTS_HELD_H

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define POLYRING_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define POLYRING_SANITIZED 1
#endif
#endif

typedef struct {
  long descriptors, threads;
  long segments; /* of Polyring's shared memory that are mapped */
  long kib;      /* of memory in use */
} Held;

static long held_entries(const char* folder) {
  DIR* open = opendir(folder);
  long entries = 0;
  if (open == NULL) return -1;
  while (readdir(open) != NULL) ++entries;
  closedir(open);
  return entries;
}

static Held held_now(void) {
  Held held = {0, 0, 0, 0};
  char line[512];
  long pages = 0;
  FILE* file = fopen("/proc/self/maps", "r");
  held.descriptors = held_entries("/proc/self/fd");
  held.threads = held_entries("/proc/self/task");
  while (file != NULL && fgets(line, sizeof(line), file) != NULL)
    held.segments += strstr(line, "memfd:polyring") != NULL;
  if (file != NULL) fclose(file);
  file = fopen("/proc/self/statm", "r");
  if (file != NULL && fscanf(file, "%*s %ld", &pages) != 1) pages = 0;
  if (file != NULL) fclose(file);
  held.kib = pages * (sysconf(_SC_PAGESIZE) / 1024);
  return held;
}

/* Says by how much. Some communicators may still wait for their end, and so hold something; a sanitizer keeps
 * what was freed. */
static int held_more(const char* who, Held before) {
  enum { FEW = 16, FEW_KIB = 2048 };
  const Held now = held_now();
  printf("%s: grew by %ld descriptors, %ld threads, %ld segments, %ld KiB\n", who,
         now.descriptors - before.descriptors, now.threads - before.threads, now.segments - before.segments,
         now.kib - before.kib);
#ifdef POLYRING_SANITIZED
  before.kib = now.kib;
#endif
  return now.descriptors - before.descriptors > FEW || now.threads > before.threads ||
         now.segments - before.segments > FEW || now.kib - before.kib > FEW_KIB;
}

#endif
