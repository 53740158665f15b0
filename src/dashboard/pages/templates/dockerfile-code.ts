/** The template to build, as in the form. Empty commands count as absent. */
export type BuildWish = {
  name: string;
  dockerfile: string;
  cpuCount: number;
  memoryMB: number;
  startCmd: string;
  readyCmd: string;
};

/** The body of the request that registers the build. */
export function bodyOf({ name, startCmd, readyCmd, ...wish }: BuildWish): Record<string, unknown> {
  return { alias: name, ...wish, ...(startCmd && { startCmd }), ...(readyCmd && { readyCmd }) };
}

/** The same with the SDKs and curl. */
export function codeOf(wish: BuildWish, origin: string): Record<string, string> {
  return { JavaScript: javascript(wish), Python: python(wish), curl: curl(wish, origin) };
}

/** What the SDKs get if no command tells when the program is ready: then it is ready at once. */
const atOnce = 'true';

const json = (value: unknown) => JSON.stringify(value);

function javascript({ name, dockerfile, cpuCount, memoryMB, startCmd, readyCmd }: BuildWish): string {
  const commands = startCmd ? `\n  .setStartCmd(${json(startCmd)}, ${json(readyCmd || atOnce)})` : '';
  return (
    `import { Template } from 'e2b';\n\n` +
    `const template = Template()\n  .fromDockerfile(${json(dockerfile)})${commands};\n` +
    `await Template.build(template, ${json(name)}, { cpuCount: ${cpuCount}, memoryMB: ${memoryMB} });`
  );
}

function python({ name, dockerfile, cpuCount, memoryMB, startCmd, readyCmd }: BuildWish): string {
  const commands = startCmd ? `\n    .set_start_cmd(${json(startCmd)}, ${json(readyCmd || atOnce)})` : '';
  return (
    `from e2b import Template\n\n` +
    `template = (\n    Template()\n    .from_dockerfile(${json(dockerfile)})${commands}\n)\n` +
    `Template.build(template, ${json(name)}, cpu_count=${cpuCount}, memory_mb=${memoryMB})`
  );
}

function curl(wish: BuildWish, origin: string): string {
  const body = json(bodyOf(wish)).replaceAll("'", String.raw`'\''`);
  const head = `curl -X POST ${origin}/templates`;
  const key = '-H "X-API-Key: $E2B_API_KEY"';
  return (
    `${head} ${key} \\\n  -H 'Content-Type: application/json' -d '${body}'\n` +
    `# With templateID and buildID of the answer:\n${head}/TEMPLATE_ID/builds/BUILD_ID ${key}`
  );
}
