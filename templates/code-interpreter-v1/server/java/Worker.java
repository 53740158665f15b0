import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import jdk.jshell.Diag;
import jdk.jshell.EvalException;
import jdk.jshell.JShell;
import jdk.jshell.JShellException;
import jdk.jshell.Snippet;
import jdk.jshell.SnippetEvent;
import jdk.jshell.SourceCodeAnalysis.Completeness;

/**
 * Runs cells of Java one after the other in one JShell. Arguments: the descriptors of requests and of replies, a line each:
 * `<code, base64> <marker, base64>`, answered by JSON (see worker_kernel.py). The marker ends what a cell writes to both streams.
 */
public final class Worker {
  private static final List<String> IMPORTED =
      List.of("java.io", "java.math", "java.net", "java.nio.file", "java.time", "java.util", "java.util.concurrent", "java.util.function", "java.util.regex", "java.util.stream");

  private final JShell shell = JShell.builder().executionEngine("local").build();

  /** What ended a cell early, as a kernel tells it. */
  private static final class CellError extends Exception {
    final String name;
    final String stack;

    CellError(String name, String message, String stack) {
      super(message);
      this.name = name;
      this.stack = stack;
    }
  }

  public static void main(String[] arguments) throws Exception {
    Worker worker = new Worker();
    for (String name : IMPORTED) worker.shell.eval("import " + name + ".*;");
    // An interrupt ends the cell, not the process.
    sun.misc.Signal.handle(new sun.misc.Signal("INT"), signal -> worker.shell.stop());
    PrintStream replies = new PrintStream(new FileOutputStream("/proc/self/fd/" + arguments[1]), true, StandardCharsets.UTF_8);
    BufferedReader requests = new BufferedReader(new InputStreamReader(new FileInputStream("/proc/self/fd/" + arguments[0]), StandardCharsets.US_ASCII));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      String[] parts = line.split(" ");
      String reply = worker.answer(new String(Base64.getDecoder().decode(parts[0]), StandardCharsets.UTF_8));
      byte[] marker = Base64.getDecoder().decode(parts[1]);
      System.out.flush();
      System.err.flush();
      for (FileDescriptor stream : List.of(FileDescriptor.out, FileDescriptor.err)) new FileOutputStream(stream).write(marker);
      replies.println(reply);
    }
    // The kernel is gone, whatever threads the code has left.
    Runtime.getRuntime().halt(0);
  }

  private String answer(String code) {
    try {
      String value = run(code);
      return value == null || value.isEmpty() ? "{}" : "{\"data\":{\"text/plain\":" + json(value) + "}}";
    } catch (CellError error) {
      return "{\"error\":{\"name\":" + json(error.name) + ",\"message\":" + json(error.getMessage()) + ",\"stack\":" + json(error.stack) + "}}";
    }
  }

  /** The value of the last snippet where it is an expression that has one; else null. */
  private String run(String code) throws CellError {
    String value = null;
    for (String rest = code; !rest.isBlank(); ) {
      var completion = shell.sourceCodeAnalysis().analyzeCompletion(rest);
      if (completion.completeness() == Completeness.DEFINITELY_INCOMPLETE)
        throw new CellError("IncompleteSourceException", "the code ends in the middle of a statement", rest);
      // Of what can't be parsed, evaluating says what is wrong.
      String source = completion.source() == null ? rest : completion.source();
      rest = completion.source() == null || completion.remaining() == null ? "" : completion.remaining();
      for (SnippetEvent event : shell.eval(source)) {
        if (event.causeSnippet() == null) value = valueOf(event, source);
      }
    }
    return value;
  }

  private String valueOf(SnippetEvent event, String source) throws CellError {
    if (event.exception() != null) throw thrown(event.exception());
    if (event.status() == Snippet.Status.REJECTED) throw rejected(event.snippet(), source);
    boolean isExpression =
        event.snippet().kind() == Snippet.Kind.EXPRESSION || event.snippet().subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND;
    String value = isExpression ? event.value() : null;
    if (value == null || value.equals("null")) return null;
    // A string is told as its literal.
    return value.length() >= 2 && value.startsWith("\"") && value.endsWith("\"") ? value.substring(1, value.length() - 1).translateEscapes() : value;
  }

  private CellError rejected(Snippet snippet, String source) {
    String messages = shell.diagnostics(snippet).filter(Diag::isError).map(diag -> diag.getMessage(Locale.ENGLISH)).collect(Collectors.joining("\n"));
    return new CellError("CompilationException", messages, messages + "\n\n" + source);
  }

  private static CellError thrown(JShellException exception) {
    String name = exception instanceof EvalException ? ((EvalException) exception).getExceptionClassName() : exception.getClass().getName();
    String message = exception.getMessage() == null ? "" : exception.getMessage();
    StringBuilder stack = new StringBuilder(name + ": " + message);
    for (StackTraceElement frame : exception.getStackTrace()) stack.append("\n    at ").append(frame);
    return new CellError(name, message, stack.toString());
  }

  private static String json(String text) {
    StringBuilder quoted = new StringBuilder("\"");
    for (char character : text.toCharArray()) {
      if (character == '"' || character == '\\') quoted.append('\\').append(character);
      else if (character < ' ' || character > '~') quoted.append(String.format("\\u%04x", (int) character));
      else quoted.append(character);
    }
    return quoted.append('"').toString();
  }
}
