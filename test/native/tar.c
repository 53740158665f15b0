// Runs criu-tar.c as the program that CRIU would start. Exits with 77 if it leaves the work to tar.
#include "../../native/criu-tar.h"

int main(int count, char **argument) {
  int status = count > 0 ? tarInPlace(argument) : 1;
  return status < 0 ? 77 : status;
}
