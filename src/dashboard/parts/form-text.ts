import { useEffect, useRef } from 'react';
import type { RefObject } from 'react';

/**
 * A form whose fields show these values until something is typed, and again when one of them changes. The focus stays.
 */
export function useFormOf(values: readonly (string | undefined)[]): RefObject<HTMLFormElement | null> {
  const form = useRef<HTMLFormElement>(null);
  const shown = values.join('\n');
  useEffect(() => form.current?.reset(), [shown]);
  return form;
}

/** The text typed into a field of a form, trimmed; undefined if nothing was typed. */
export function formText(form: HTMLFormElement, name: string): string | undefined {
  const value = new FormData(form).get(name);
  const text = typeof value === 'string' ? value.trim() : '';
  return text === '' ? undefined : text;
}
