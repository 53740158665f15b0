/** The version of this Atoll, as package.json has it. */
export const platformVersion = '0.1.0';
