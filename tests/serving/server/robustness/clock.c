/* Loaded before libc: the wall clock is off by as many seconds as the file in CLOCK_OFFSET_FILE
 * says. The monotonic clock is left alone, as it is when somebody sets a machine's clock. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long offset(void) {
  const char *path = getenv("CLOCK_OFFSET_FILE");
  FILE *file = path ? fopen(path, "r") : NULL;
  long seconds = 0;
  if (file) {
    if (fscanf(file, "%ld", &seconds) != 1) seconds = 0;
    fclose(file);
  }
  return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int status = real(clock, at);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) at->tv_sec += offset();
  return status;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  static int (*real)(struct timeval *, void *);
  if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
  int status = real(at, zone);
  at->tv_sec += offset();
  return status;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
