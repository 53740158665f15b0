// Archives of file systems that hold next to nothing: criu-tar.c.
#pragma once

// Does what tar would do with these arguments of CRIU's, and answers its exit status; -1 if the job is too much for
// it: then nothing was done.
int tarInPlace(char *const argument[]);
