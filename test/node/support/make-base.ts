import { startTestNode } from './test-node.ts';

// Run by set-up of the tests: the suites find the base template's layer in the machine's cache. Some of them run their
// node in a network namespace from which no mirror could be reached to make it.
const node = await startTestNode();
await node.dispose();
process.exit(0);
