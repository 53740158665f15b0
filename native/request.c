// Requests to the helper: how bytes become lines, and lines requests. Linked alone by its tests.
#define _GNU_SOURCE
#include "helper.h"

// Cuts a request in place, whose parts each end with NUL, into `field`, which has room for requestPartsMax + 1;
// `line[length]` must be NUL. Answers the name of the operation; NULL with errno if the request names none (EINVAL) or
// has more parts than there is room for (E2BIG): it is never carried out in part.
const char *parseRequest(char *line, size_t length, char **field, struct request *r) {
  int fields = 0;
  r->id = line;
  for (char *p = line; p < line + length; p += strlen(p) + 1) {
    if (fields == requestPartsMax) return errno = E2BIG, NULL;
    field[fields++] = p;
  }
  field[fields] = NULL;
  if (fields < 2) return errno = EINVAL, NULL;
  r->argument = field + 2;
  r->arguments = fields - 2;
  return field[1];
}

// Hands over each whole line of `used` bytes, its end replaced by NUL, and moves the rest to the beginning. Answers the
// length of the rest.
size_t takeLines(char *buffer, size_t used, void (*take)(char *line, size_t length)) {
  char *start = buffer, *end;
  while ((end = memchr(start, '\n', buffer + used - start))) {
    *end = 0;
    take(start, end - start);
    start = end + 1;
  }
  used -= start - buffer;
  memmove(buffer, start, used);
  return used;
}

// Reads six octets in hexadecimal, separated by colons; -1 with EINVAL for anything else.
int parseMac(const char *text, uint8_t *mac) {
  int length = 0;
  int octets = sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", mac, mac + 1, mac + 2, mac + 3, mac + 4, mac + 5, &length);
  return octets == 6 && length == 17 && !text[length] ? 0 : (errno = EINVAL, -1);
}
