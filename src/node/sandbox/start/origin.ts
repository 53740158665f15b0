import type { TemplateImage } from '../../../protocol/node.ts';

/** The file that tells a sandbox what it was made from, relative to its root. */
export const originFile = '.e2b';

/** The content of that file. */
export function originText({ templateId, buildId }: Pick<TemplateImage, 'templateId' | 'buildId'>): string {
  return `ENV_ID=${templateId}\nTEMPLATE_ID=${templateId}\nBUILD_ID=${buildId}\n`;
}
