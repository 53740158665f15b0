import { expect, test } from 'bun:test';
import { namedDriver, type TemplateDrivers } from './template-driver.ts';

test('a name without namespace gets any team’s template into gVisor, and none out of it', () => {
  const drivers: TemplateDrivers = new Map([['safe', 'crun'], ['wild', 'gvisor'], ['acme/tools', 'crun'], ['some-id', 'gvisor']]);
  const driver = (namespace: string, alias: string, templateId = 'id') => namedDriver(drivers, templateId, [{ namespace, alias }]);
  expect(driver('', 'safe')).toBe('crun');
  expect(driver('mallory', 'safe')).toBeUndefined();
  expect(driver('', 'wild')).toBe('gvisor');
  expect(driver('mallory', 'wild')).toBe('gvisor');
  expect(driver('acme', 'tools')).toBe('crun');
  expect(driver('mallory', 'tools')).toBeUndefined();
  expect(driver('acme', 'tools', 'some-id')).toBe('gvisor');
});
