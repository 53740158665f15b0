import { AtollError } from '../../../../base/error.ts';
import { checkNetwork } from '../network/config.ts';
import type { Features } from '../../features.ts';
import type { SandboxOptions } from '../../record.ts';

/** Bounds of the content of a create. */
const createBounds = {
  /** The longest `name=value` that the kernel takes as one string at exec (MAX_ARG_STRLEN). */
  envVarBytesMax: 131_071,
  envVarsBytesMax: 1024 * 1024,
  metadataBytesMax: 256 * 1024,
  /** Each is a row, by which lists find the sandbox. */
  metadataPairsMax: 256,
  mcpBytesMax: 64 * 1024,
  iamTokensMax: 5,
} as const;

/** Checks what a create's schema can't express. Throws `invalid` or `forbidden`, naming the member. */
export function checkSandboxOptions(features: Features, options: SandboxOptions): void {
  checkLifecycle(options);
  checkEnvVars(options.envVars);
  checkMetadata(options.metadata ?? {});
  checkLength('mcp', options.mcp ?? {}, createBounds.mcpBytesMax);
  checkIam(features, options.iam);
  if (options.network) {
    const { allowInternetAccess, secure, iam } = options;
    checkNetwork(options.network, {
      prefix: 'network.',
      allowInternetAccess,
      secure,
      features,
      tokens: Object.keys(iam?.tokens ?? {}),
    });
  }
}

function checkLifecycle({ autoPause, autoPauseMemory, autoPauseDurability, autoResume }: SandboxOptions): void {
  if (autoPauseDurability === 'cluster' && !autoPause)
    throw new AtollError('invalid', 'autoPauseDurability: cluster needs autoPause: true');
  if (autoPauseMemory) return;
  if (!autoPause) throw new AtollError('invalid', 'autoPauseMemory: false needs autoPause: true');
  if (autoResume) {
    throw new AtollError(
      'invalid',
      "autoPauseMemory: false can't be combined with autoResume: traffic never wakes a sandbox without memory",
    );
  }
}

function checkEnvVars(envVars: Record<string, string>): void {
  let total = 0;
  for (const [name, value] of Object.entries(envVars)) {
    if (name === '' || /[=\0]/.test(name)) {
      throw new AtollError(
        'invalid',
        `envVars: ${JSON.stringify(name)} is not a variable's name (empty, or holds "=" or NUL)`,
      );
    }
    if (value.includes('\0')) throw new AtollError('invalid', `envVars["${name}"]: holds a NUL character`);
    const bytes = Buffer.byteLength(name) + 1 + Buffer.byteLength(value);
    if (bytes > createBounds.envVarBytesMax) {
      throw new AtollError(
        'invalid',
        `envVars["${name}"]: ${bytes} bytes with its name, the most is ${createBounds.envVarBytesMax}`,
      );
    }
    total += bytes;
  }
  if (total > createBounds.envVarsBytesMax) {
    throw new AtollError('invalid', `envVars: ${total} bytes in all, the most is ${createBounds.envVarsBytesMax}`);
  }
}

function checkMetadata(metadata: Record<string, string>): void {
  const pairs = Object.keys(metadata).length;
  if (pairs > createBounds.metadataPairsMax)
    throw new AtollError('invalid', `metadata: has ${pairs} pairs, the most is ${createBounds.metadataPairsMax}`);
  checkLength('metadata', metadata, createBounds.metadataBytesMax);
}

function checkLength(name: string, value: Record<string, unknown>, bytesMax: number): void {
  const bytes = Buffer.byteLength(JSON.stringify(value));
  if (bytes > bytesMax) throw new AtollError('invalid', `${name}: ${bytes} bytes, the most is ${bytesMax}`);
}

function checkIam(features: Features, iam: SandboxOptions['iam']): void {
  const tokens = Object.entries(iam?.tokens ?? {});
  if (tokens.length > createBounds.iamTokensMax) {
    throw new AtollError(
      'invalid',
      `iam.tokens: has ${tokens.length} tokens, the most is ${createBounds.iamTokensMax}`,
    );
  }
  for (const [name, token] of tokens) {
    if (name === '') throw new AtollError('invalid', 'iam.tokens: a name must not be empty');
    if (token.audience === '') throw new AtollError('invalid', `iam.tokens["${name}"].audience: must not be empty`);
    if (token.tokenType !== 'JWT-SVID')
      throw new AtollError('invalid', `iam.tokens["${name}"].tokenType: must be "JWT-SVID"`);
  }
  if (tokens.length > 0 && !features.iam) {
    throw new AtollError('invalid', 'iam.tokens: identity tokens are not available in this installation');
  }
}
