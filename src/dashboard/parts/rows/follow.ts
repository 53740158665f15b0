/** A click, as React tells of it. */
type Click = Pick<MouseEvent, 'button' | 'metaKey' | 'ctrlKey' | 'shiftKey' | 'altKey' | 'preventDefault'>;

/** Goes where a link leads without loading the page anew, unless the browser was asked for another window. */
export function follow(click: Click, open: () => void): void {
  if (click.button !== 0 || click.metaKey || click.ctrlKey || click.shiftKey || click.altKey) return;
  click.preventDefault();
  open();
}
