import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { document } from '../../src/api/routes.ts';

writeFileSync(join(import.meta.dir, '../../docs/openapi.json'), `${JSON.stringify(document, null, 2)}\n`);
