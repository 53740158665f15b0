// Stands in for libgnutls, by its name (DT_SONAME). CRIU is linked to that library, which comes with eight others and
// takes as long to load as everything else, makes each process that CRIU forks larger, and is not used without
// `--tls`. CRIU finds its functions when it calls them, and this variable when it starts.
#include <stdlib.h>

void (*gnutls_free)(void *) = free;
