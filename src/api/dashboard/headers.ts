/**
 * Headers of every answer of the dashboard: nobody may frame it, sniff its type, or learn from where a visitor came.
 */
const always: Record<string, string> = {
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
};

/**
 * The headers of the page. Scripts, styles, fonts and connections come from its own origin; `nonce` is for the style
 * elements that the terminal makes. Output of a sandbox can't become a script even if it got into the page.
 */
export function pageHeaders(nonce: string): Record<string, string> {
  return {
    ...always,
    'Content-Type': 'text/html; charset=utf-8',
    'Cache-Control': 'no-store',
    'Content-Security-Policy': [
      "default-src 'none'",
      "script-src 'self'",
      `style-src 'self' 'nonce-${nonce}'`,
      "img-src 'self' blob: data:",
      "font-src 'self'",
      "connect-src 'self'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
      "form-action 'none'",
      "require-trusted-types-for 'script'",
    ].join('; '),
  };
}

/** The headers of a file whose name holds the digest of its content. */
export function assetHeaders(contentType: string): Record<string, string> {
  return { ...always, 'Content-Type': contentType, 'Cache-Control': 'public, max-age=31536000, immutable' };
}

/**
 * The headers of a page of the documentation: style sheet and pictures come from its own origin, and it has no script.
 */
export function docsHeaders(contentType = 'text/plain; charset=utf-8'): Record<string, string> {
  return {
    ...always,
    'Content-Type': contentType,
    'Cache-Control': 'no-cache',
    'Content-Security-Policy':
      "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action " +
      "'none'",
  };
}
