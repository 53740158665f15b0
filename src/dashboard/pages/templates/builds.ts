import type { TemplateBuild, TemplateWithBuilds } from '../../../protocol/api/template.ts';
import { usePages } from '../../api/pages.ts';
import type { Pages } from '../../api/pages.ts';

/** The builds of a template, newest first; each page of them comes with the template. */
export const useBuilds = (templateId: string): Pages<TemplateBuild, TemplateWithBuilds> =>
  usePages<TemplateBuild, TemplateWithBuilds>(`/templates/${encodeURIComponent(templateId)}`, {
    rowsOf: ({ builds }) => builds,
  });
