import { startTestNode } from './test-node.ts';

// Run by the tests' set-up, so that suites find the base template's layer in the machine's cache. Some of them run
// their node in a network namespace from which no mirror is reachable.
const node = await startTestNode();
await node.dispose();
process.exit(0);
