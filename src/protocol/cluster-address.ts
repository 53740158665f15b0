/** The host of `host:port`, without the brackets of IPv6. */
export const hostOf = (address: string): string => address.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
