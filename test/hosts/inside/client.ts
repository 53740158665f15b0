import { lookAt } from './feature.ts';
import { keepingFeatures } from './keeping.ts';
import { limitFeatures } from './limits.ts';
import { sandboxFeatures } from './sandbox.ts';
import { templateFeatures } from './templates.ts';

// Runs on a host of the laboratory, beside a platform, with the published SDK as its users have it. The environment
// says where the platform is; the arguments are the names of the features to examine, by default all.
await lookAt([...sandboxFeatures, ...limitFeatures, ...keepingFeatures, ...templateFeatures], process.argv.slice(2));
process.exit(0);
