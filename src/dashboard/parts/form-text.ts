/** What was typed into a field of a form, without spaces around it; undefined where nothing was. */
export function formText(form: HTMLFormElement, name: string): string | undefined {
  const value = new FormData(form).get(name);
  const text = typeof value === 'string' ? value.trim() : '';
  return text === '' ? undefined : text;
}
