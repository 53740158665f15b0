// See remove-tree.c.
#pragma once

// Removes the directory `name` of `parent`. Answers 0; an error is written to stderr with its errno and ends the
// process.
int removeTree(int parent, const char *name);
