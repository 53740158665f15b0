// Asks whether a network policy lets a sandbox reach a host, before any sandbox has it.
import { atoll, AtollFailure } from '@atoll/client';

const platform = atoll();
const policy = { allow_internet_access: false, allowOut: ['*.example.com'] };

for (const host of ['api.example.com', 'example.org']) {
  const { verdict, rule } = await platform.getNetworkVerdict({ body: { host, ...policy } });
  console.log(`${host}: ${verdict} (${rule})`);
}

try {
  await platform.getNetworkVerdict({ body: { host: '' } });
} catch (error) {
  if (!(error instanceof AtollFailure)) throw error;
  console.log(`${error.status}: ${error.message}`);
}
