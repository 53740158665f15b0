import { expect, test } from 'bun:test';
import { Template } from 'e2b';
import { missingDevContainerStep, plansDevContainer } from './dev-container.ts';

/** What the published SDK sends. */
async function sent(template: Parameters<typeof Template.toJSON>[0]) {
  const { steps, startCmd } = JSON.parse(await Template.toJSON(template)) as {
    steps?: { type: string; args: string[]; force: boolean }[];
    startCmd: string;
  };
  return { steps: steps ?? [], startCmd };
}
const begin = () => Template().fromTemplate('devcontainer');

test('the steps of the SDK’s two methods are recognized, whatever the folder’s name', async () => {
  for (const folder of ['/srv/project', "/srv/my project's && more"]) {
    const both = await sent(begin().betaDevContainerPrebuild(folder).betaSetDevContainerStart(folder));
    expect(both.steps.map(plansDevContainer)).toEqual([true]);
    expect(missingDevContainerStep(both.steps, both.startCmd)).toBeUndefined();
    const { steps, startCmd } = await sent(begin().betaSetDevContainerStart(folder));
    expect(missingDevContainerStep(steps, startCmd)?.args).toEqual(both.steps[0]?.args ?? []);
  }
});

test('other steps and commands are left alone', () => {
  expect(plansDevContainer({ type: 'RUN', args: ['echo devcontainer build'], force: false })).toBe(false);
  expect(missingDevContainerStep([], 'python3 -m http.server')).toBeUndefined();
  expect(missingDevContainerStep([], undefined)).toBeUndefined();
});
