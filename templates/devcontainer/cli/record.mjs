// Where a build keeps what the published command line wanted of a container engine.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const top = '/opt/devcontainer';
const record = join(top, 'record');

export const folders = {
  top,
  record,
  /** Configurations of images, by the names that they were asked for. */
  images: join(record, 'images'),
  /** For the published command line's own files: what features bring is built from here. */
  temporary: join(top, 'temporary'),
  /** What a sandbox has of all this. */
  run: join(top, 'run'),
  plan: join(top, 'plan.json'),
};

/** Keeps one build that was asked for, after those before it. */
export function keepBuild(build) {
  writeFileSync(buildFile(recorded().length), JSON.stringify(build));
}

/** All builds that were asked for, in order. */
export function recorded() {
  const builds = [];
  while (existsSync(buildFile(builds.length)))
    builds.push(JSON.parse(readFileSync(buildFile(builds.length), 'utf8')));
  return builds;
}

const buildFile = number => join(record, `build-${number}.json`);
const fileOf = image => join(folders.images, `${encodeURIComponent(image).slice(0, 200)}.json`);

/** The configuration of an image (OCI image specification, `config`), asked of `read` at most once. */
export function configurationOf(image, read) {
  const file = fileOf(image);
  if (!existsSync(file)) writeFileSync(file, JSON.stringify(read(image)));
  return JSON.parse(readFileSync(file, 'utf8'));
}

/** The user of the last image that was asked for; empty where none says one. */
export function imageUser() {
  const users = readdirSync(folders.images).map(
    name => JSON.parse(readFileSync(join(folders.images, name), 'utf8')).User?.split(':')[0] ?? '',
  );
  return users.find(user => user !== '') ?? '';
}
