// Archives of file systems that hold next to nothing: criu-tar.c.
#pragma once

// Does what tar would do with these arguments of CRIU's, and answers its exit status; -1, and nothing was done, where that
// is more than this can.
int tarInPlace(char *const argument[]);
