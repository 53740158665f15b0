/**
 * Stamps the page's nonce on style elements that a library makes, as the page's policy asks for. xterm takes no nonce
 * itself. Answers what ends it.
 */
export function stampStyles(): () => void {
  const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? '';
  const create = document.createElement.bind(document);
  const stamped = (name: string, options?: ElementCreationOptions) => {
    const element = create(name, options);
    if (name.toLowerCase() === 'style') element.nonce = nonce;
    return element;
  };
  document.createElement = stamped as typeof document.createElement;
  return () => {
    // The prototype's own is behind it.
    delete (document as Partial<Document>).createElement;
  };
}
