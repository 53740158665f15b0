import { runBuilder } from '../builder/main.ts';

// Started by the node through native/confine.c, never by hand: without rights, environment and arguments.
void runBuilder().then(() => process.exit(0));
