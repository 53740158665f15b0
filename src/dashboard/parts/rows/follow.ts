/** A click as React reports it. */
type Click = Pick<MouseEvent, 'button' | 'metaKey' | 'ctrlKey' | 'shiftKey' | 'altKey' | 'preventDefault'>;

/** Follows a link without reloading the page, unless the user asked the browser for another window. */
export function follow(click: Click, open: () => void): void {
  if (click.button !== 0 || click.metaKey || click.ctrlKey || click.shiftKey || click.altKey) return;
  click.preventDefault();
  open();
}
