import { expect, test } from 'bun:test';
import { bodyOf, codeOf } from './dockerfile-code.ts';

const plain = { name: 'tools', dockerfile: 'FROM a\nRUN "b"', cpuCount: 2, memoryMB: 512, startCmd: '', readyCmd: '' };

test('a template without commands says none, in no language', () => {
  expect(bodyOf(plain)).toEqual({ alias: 'tools', dockerfile: plain.dockerfile, cpuCount: 2, memoryMB: 512 });
  const { JavaScript, Python, curl } = codeOf(plain, 'http://h');
  expect(JavaScript).toBe(
    `import { Template } from 'e2b';\n\nconst template = Template()\n  .fromDockerfile("FROM a\\nRUN \\"b\\"");\n` +
      'await Template.build(template, "tools", { cpuCount: 2, memoryMB: 512 });',
  );
  expect(Python).toContain('    .from_dockerfile("FROM a\\nRUN \\"b\\"")\n)\n');
  expect(Python).toContain('Template.build(template, "tools", cpu_count=2, memory_mb=512)');
  expect(curl).toContain(`-d '${JSON.stringify(bodyOf(plain))}'\n`);
  expect(curl).toContain('curl -X POST http://h/templates/TEMPLATE_ID/builds/BUILD_ID');
});

test('a program that is started is ready at once, or when a command says so', () => {
  const started = { ...plain, startCmd: "serve 'x'" };
  expect(bodyOf(started)).toMatchObject({ startCmd: "serve 'x'" });
  expect(bodyOf(started)).not.toHaveProperty('readyCmd');
  expect(codeOf(started, 'http://h')).toMatchObject({
    JavaScript: expect.stringContaining(`.setStartCmd("serve 'x'", "true");`),
    Python: expect.stringContaining(`.set_start_cmd("serve 'x'", "true")\n`),
    // A quote must not end the shell's string.
    curl: expect.stringContaining(String.raw`"serve '\''x'\''"`),
  });
  const { JavaScript, Python } = codeOf({ ...started, readyCmd: 'curl h' }, 'http://h');
  expect(JavaScript).toContain(`.setStartCmd("serve 'x'", "curl h")`);
  expect(Python).toContain(`.set_start_cmd("serve 'x'", "curl h")`);
});
