// Declarations that the parts of the helper share.
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Layers of one root: more than any template has.
enum { layersMax = 128 };

// A request: its ID, the operation and the operation's arguments.
enum { argumentsMax = 192, requestPartsMax = argumentsMax + 2 };

struct request {
  char *id;
  char **argument; // NULL-terminated
  int arguments;
  char result[256];
};

struct failure {
  int error;
  char what[400];
};

// A directory of the helper's own, to mount on for a moment.
extern char scratchDirectory[];
// For tests: makes the helper act as on kernels before 6.12, which mount images by loop devices and overlays by paths.
extern int olderKernel;

// Records errno and what was tried; answers -1.
int fail(struct failure *failure, const char *what);

// Reading requests: request.c.
const char *parseRequest(char *line, size_t length, char **field, struct request *r);
size_t takeLines(char *buffer, size_t used, void (*take)(char *line, size_t length));
int parseMac(const char *text, uint8_t *mac);

// Each operation answers 0 (done), 1 (will be answered later) or -1 (failed, nothing left behind).
int opDiskCreate(struct request *, struct failure *); // disk.c
int opDiskMount(struct request *, struct failure *);
int opDiskUsed(struct request *, struct failure *);
int opLayerMount(struct request *, struct failure *);
int opShow(struct request *, struct failure *);
int opUnmount(struct request *, struct failure *);
int opAdoptRoot(struct request *, struct failure *); // root.c
int opBind(struct request *, struct failure *);
int opSizeSharedMemory(struct request *, struct failure *);
int opNameHost(struct request *, struct failure *);
int opLinkUp(struct request *, struct failure *); // link.c
int opLinkDown(struct request *, struct failure *);
int opAccessUp(struct request *, struct failure *);
int opView(struct request *, struct failure *); // view.c
int opOverlayMount(struct request *, struct failure *); // snapshot-overlay.c
int opMappedMount(struct request *, struct failure *);
int opRestrict(struct request *, struct failure *);

// A detached copy of the mount at `path` whose owners appear shifted into the user namespace; -1 with errno.
int openIdmapped(const char *path, int userns, uint64_t attributes); // root.c
// A detached overlay mount: layers lowest first; `disk` holds upper/ and work/; `userns` shifts owners to `base`.
int makeOverlay(char **layer, int layers, const char *disk, int userns, uint32_t base, struct failure *); // root.c

// The programs of snapshot-program.c. Answers the exit status, or -1 if the arguments are not theirs.
int snapshotProgram(int count, char **argument);
int watchPaths(const char *pid, const char *groupFile, const char *imagePath, char **disk); // snapshot-watches.c
int lookForNameless(const char *looks, const char *bytes); // snapshot-nameless.c
int undoDump(const char *pid, const char *processFile);                                      // snapshot-undo.c
int removePacketRules(void);
int followDirectory(const char *path, int writeOut); // snapshot-follow.c
int sealDirectory(const char *path, int durable);    // snapshot-seal.c
int flushDirectory(const char *path, char **name);
int verifyDirectory(const char *path, const char *part);
int bringLater(const char *file); // snapshot-later.c
int waitForLater(const char *file);
int verifyNow(const char *file);
int endLater(const char *file, const char *directory);
int removeBeneath(const char *root, const char *path); // volume.c
int confine(char **argument);                                                               // confine.c
