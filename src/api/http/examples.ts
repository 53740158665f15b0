/**
 * Bodies that people begin with, by operation: they are in the API's document, and on the pages of the documentation. A
 * test holds each against its schema.
 */
export const examples: Readonly<Record<string, object>> = {
  createSandbox: { templateID: 'base', timeout: 600, metadata: { task: 'example' }, envVars: { COLOUR: 'blue' } },
  createSandboxV2: { templateID: 'base', timeout: 600, autoPause: true, metadata: { task: 'example' } },
  connectSandbox: { timeout: 600 },
  connectSandboxV2: { timeout: 600 },
  setSandboxTimeout: { timeout: 3600 },
  pauseSandbox: { memory: false },
  forkSandbox: { count: 3, timeout: 600 },
  createSnapshot: { name: 'before-the-change' },
  updateSandboxNetwork: { denyOut: ['0.0.0.0/0'], allowOut: ['pypi.org', '*.pythonhosted.org'] },
  getNetworkVerdict: { host: 'pypi.org', denyOut: ['0.0.0.0/0'], allowOut: ['pypi.org'] },
  createVolume: { name: 'notes' },
  createSecret: { name: 'api-token', value: 'the value' },
  createWebhook: { name: 'ended', url: 'https://hooks.example.org/atoll', events: ['sandbox.lifecycle.killed'] },
  createTemplateV3: { name: 'my-app:v1', cpuCount: 2, memoryMB: 1024 },
  assignTemplateTags: { target: 'my-app:v1', tags: ['stable'] },
  createApiKey: { name: 'ci' },
  adminCreateTeam: { name: 'Research', slug: 'research' },
  adminUpdateTeam: { limits: { concurrentSandboxes: 20, lifetimeHours: 2 } },
  adminCreateUser: { name: 'Ada', email: 'ada@example.org' },
};
