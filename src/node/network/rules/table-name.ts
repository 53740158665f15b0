/** The name of an installation's packet rules, of either family: inet and netdev. */
export const tableOf = (installation: number): string => `atoll${installation}`;
