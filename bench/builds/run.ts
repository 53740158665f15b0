import { measureBuilds } from './builds.ts';

// The bench of builds alone.
process.stdout.write(await measureBuilds());
process.exit(0);
