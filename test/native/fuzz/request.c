// The platform's requests to the helper. Bytes in pieces make the same requests as the whole.
#include "fuzz.h"
#include "../../../native/helper.h"

enum { bufferBytes = 1 << 12 };

static char buffer[bufferBytes];
static uint64_t sum;
static int requests;

static void note(char *line, size_t length) {
  struct request r = {0};
  char *field[requestPartsMax + 1];
  must(line[length] == 0);
  const char *name = parseRequest(line, length, field, &r);
  requests++;
  sum = sum * 31 + (name ? 1 : errno);
  if (!name) return;
  must(r.id == line && name > r.id && r.arguments >= 0 && r.arguments <= argumentsMax && !r.argument[r.arguments]);
  for (int i = 0; i < r.arguments; i++) {
    uint8_t mac[6];
    must(r.argument[i] >= line && r.argument[i] + strlen(r.argument[i]) <= line + length);
    sum = sum * 31 + strlen(r.argument[i]) + (parseMac(r.argument[i], mac) == 0);
  }
}

static void feed(const uint8_t *data, size_t size, size_t piece) {
  size_t used = 0;
  sum = requests = 0;
  for (size_t at = 0; at < size;) {
    size_t count = size - at < piece ? size - at : piece;
    if (count > bufferBytes - used) count = bufferBytes - used;
    memcpy(buffer + used, data + at, count);
    used = takeLines(buffer, used + count, note), at += count;
    must(used <= bufferBytes);
    if (used == bufferBytes) return; // the helper ends here
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > bufferBytes / 2) return 0;
  feed(data, size, size ? size : 1);
  uint64_t whole = sum;
  int all = requests;
  feed(data, size, size ? 1 + data[0] % 7 : 1);
  must(sum == whole && requests == all);
  return 0;
}
