import { expect, test } from 'bun:test';
import { namedDriver, type TemplateDrivers } from './driver.ts';

test('a name gets any team’s template into gVisor, and an ID alone out of it', () => {
  const drivers: TemplateDrivers = new Map([
    ['safe', 'crun'],
    ['wild', 'gvisor'],
    ['acme/tools', 'crun'],
    ['acme/lab', 'gvisor'],
    ['some-id', 'crun'],
  ]);
  const driver = (namespace: string, alias: string, templateId = 'id') =>
    namedDriver(drivers, templateId, [{ namespace, alias }]);
  // Whoever publishes a template first has the name without a namespace.
  expect(driver('', 'safe')).toBeUndefined();
  expect(driver('mallory', 'safe')).toBeUndefined();
  expect(driver('acme', 'tools')).toBeUndefined();
  expect(driver('mallory', 'some-id')).toBeUndefined();
  expect(driver('', 'some-id')).toBeUndefined();
  expect(driver('', 'wild')).toBe('gvisor');
  expect(driver('mallory', 'wild')).toBe('gvisor');
  expect(driver('acme', 'lab')).toBe('gvisor');
  expect(driver('mallory', 'lab')).toBeUndefined();
  expect(driver('mallory', 'tools', 'some-id')).toBe('crun');
  expect(driver('', 'wild', 'some-id')).toBe('gvisor');
});
