/**
 * Makes xterm's style changes comply with the page's policy from now on. Style elements get the page's nonce, for which
 * xterm has no option. A style that it writes as an attribute of a span (24-bit colours) is set through the style
 * object, which the policy allows scripts.
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
