// What the fuzz targets share. Each is linked with libFuzzer, or with standalone.c if there is no clang.
#pragma once
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// An invariant; the sanitizers show where it fails.
#define must(condition) ((condition) ? (void)0 : __builtin_trap())

// Messages of a program under test are not shown.
__attribute__((format(printf, 2, 3), unused)) static int quietly(int fd, const char *format, ...) {
  va_list list;
  va_start(list, format);
  int length = vsnprintf(NULL, 0, format, list);
  va_end(list);
  return fd < 0 ? -1 : length;
}
