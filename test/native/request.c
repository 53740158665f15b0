// Unit tests of the functions that read requests. Prints the number of checks.
#include "../../native/helper.h"

static int looked;

static void expect(int condition, const char *what) {
  looked++;
  if (!condition) dprintf(2, "not so: %s\n", what), exit(1);
}

static char lines[16][64];
static int lineCount;

static void keep(char *line, size_t length) {
  expect(line[length] == 0, "a line ends with NUL");
  snprintf(lines[lineCount++], sizeof *lines, "%s", line);
}

static void readsRequests(void) {
  char line[] = "7\0kill\0tag\0", *field[requestPartsMax + 1];
  struct request r = {0};
  const char *name = parseRequest(line, sizeof line - 2, field, &r);
  expect(name && !strcmp(name, "kill"), "the operation is named");
  expect(!strcmp(r.id, "7") && r.arguments == 1 && !strcmp(r.argument[0], "tag") && !r.argument[1], "the argument is there");
  char bare[] = "8\0";
  expect(!parseRequest(bare, 2, field, &r) && errno == EINVAL, "a request without operation is none");
  char empty[] = "";
  expect(!parseRequest(empty, 0, field, &r) && errno == EINVAL, "an empty line is none");
}

// A request with more arguments than there is room for is not carried out with the first of them.
static void refusesTooMany(void) {
  static char line[2 * (requestPartsMax + 2)];
  char *field[requestPartsMax + 1];
  struct request r = {0};
  for (int i = 0; i < requestPartsMax; i++) memcpy(line + 2 * i, "x", 2);
  expect(parseRequest(line, 2 * requestPartsMax, field, &r) && r.arguments == argumentsMax, "as many as there may be are read");
  memcpy(line + 2 * requestPartsMax, "x", 2);
  expect(!parseRequest(line, 2 * requestPartsMax + 2, field, &r) && errno == E2BIG, "one more is refused");
}

static void cutsLines(void) {
  char buffer[32] = "one\ntwo\nthr";
  size_t left = takeLines(buffer, 11, keep);
  expect(lineCount == 2 && !strcmp(lines[0], "one") && !strcmp(lines[1], "two"), "whole lines are handed over");
  expect(left == 3 && !memcmp(buffer, "thr", 3), "the rest stays");
  memcpy(buffer + left, "ee\n\n", 4);
  expect(takeLines(buffer, left + 4, keep) == 0 && lineCount == 4 && !strcmp(lines[2], "three") && !*lines[3], "and is continued");
  expect(takeLines(buffer, 0, keep) == 0 && lineCount == 4, "of nothing comes nothing");
}

static void readsAddresses(void) {
  uint8_t mac[6];
  expect(parseMac("0a:1b:2C:00:ff:01", mac) == 0 && mac[0] == 0x0a && mac[2] == 0x2c && mac[5] == 1, "an address is read");
  for (const char **text = (const char *[]){"", "0a:1b:2c:00:ff", "0a:1b:2c:00:ff:01:02", "0a:1b:2c:00:ff:0g", "0a:1b:2c:00:ff:1", "0a-1b-2c-00-ff-01", " 0a:1b:2c:00:ff:01", NULL}; *text; text++)
    expect(parseMac(*text, mac) < 0 && errno == EINVAL, *text);
}

int main(void) {
  readsRequests(), refusesTooMany(), cutsLines(), readsAddresses();
  printf("%d\n", looked);
  return 0;
}
