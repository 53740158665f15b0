import type { KnownSandboxes } from './known-sandboxes.ts';
import { addressText } from '../../../protocol/network/network.ts';
import { permitsDirect } from './policy.ts';
import type { Denial } from './proxies/messages.ts';
import type { Refusal } from './refusals.ts';

/** Reports which sandbox something was refused to, and by which rule of its policy. */
type Reports = {
  /** For a packet that the host's rules refused. `flowsMax`: connections that a sandbox may have at a time. */
  ofRules(refusal: Refusal, flowsMax: number): void;
  /** For what the proxy refused to a slot's sandbox: how often, and a sample. */
  ofProxy(slotNumber: number, count: number, sample: Denial[]): void;
};

/** Makes reports about known sandboxes. `onDenied` gets each refusal, or a sample of many. */
export function createReports(known: KnownSandboxes, onDenied: (sandboxId: string, denial: Denial) => void): Reports {
  return {
    ofRules(refusal, flowsMax) {
      const source = addressText(refusal.source);
      for (const { sandbox, policy } of known.all()) {
        if (sandbox.slot.address !== source && sandbox.slot.addressV6 !== source) continue;
        const { rule } = refusal.isOneTooMany
          ? { rule: `at most ${flowsMax} connections at a time, and as many that were just closed` }
          : permitsDirect(policy, refusal.protocol, refusal.destination, refusal.port);
        onDenied(sandbox.sandboxId, { host: addressText(refusal.destination), port: refusal.port, rule });
      }
    },
    ofProxy(slotNumber, count, sample) {
      const entry = known.get(slotNumber);
      if (!entry) return;
      known.addDenied(slotNumber, count);
      for (const denial of sample) onDenied(entry.sandbox.sandboxId, denial);
    },
  };
}
