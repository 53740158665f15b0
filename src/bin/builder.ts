import { runBuilder } from '../builder/main.ts';

// Started by the node through native/confine.c, never by hand: it has no rights, environment or arguments.
void runBuilder().then(() => process.exit(0));
