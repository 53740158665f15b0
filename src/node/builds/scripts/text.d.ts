declare module '*.sh' {
  const text: string;
  export = text;
}
