/**
 * Has what xterm does to styles from now on pass the page's policy: style elements get the page's nonce, for which it
 * has no option, and a style that it writes as an attribute of a span (colours of 24 bits) is set as a script sets it,
 * which the policy allows.
 */
export function stampStyles(): void {
  if (Object.hasOwn(document, 'createElement')) return;
  const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? '';
  const create = document.createElement.bind(document);
  const stamped = (name: string, options?: ElementCreationOptions) => {
    const element = create(name, options);
    if (name.toLowerCase() === 'style') element.nonce = nonce;
    return element;
  };
  document.createElement = stamped as typeof document.createElement;
  HTMLSpanElement.prototype.setAttribute = function setAttribute(name: string, value: string) {
    if (name === 'style') this.style.cssText = value;
    else Element.prototype.setAttribute.call(this, name, value);
  };
}
