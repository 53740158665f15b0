/** The templates that come with Atoll beside `base`, by the names of their folders in `templates`. */
export const offeredTemplates: readonly string[] = ['code-interpreter-v1'];
