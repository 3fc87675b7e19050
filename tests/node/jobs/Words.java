package cloakroom.jobs;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkFiles;
import org.apache.spark.api.java.JavaSparkContext;

/**
 * Says what the driver and the executors see: a class of another jar, a file, an archive. The only argument is the exit code.
 * With the setting spark.jobs.executors, it runs all tasks again until so many executors have had some.
 * With the setting spark.jobs.staged, a folder, executors also say what they read there themselves, and how they serialize.
 */
public final class Words {
    private static final int TASKS = 8;

    private Words() {}

    public static void main(String[] arguments) throws Exception {
        try (JavaSparkContext context = new JavaSparkContext(new SparkConf())) {
            System.out.println("seen by " + report(0));
            List<Integer> numbers = IntStream.rangeClosed(1, TASKS).boxed().toList();
            Set<String> executors = runTasks(context, numbers);
            int wanted = context.getConf().getInt("spark.jobs.executors", 1);
            for (long end = System.nanoTime() + 60_000_000_000L; executors.size() < wanted; ) {
                if (System.nanoTime() > end) {
                    throw new IllegalStateException("tasks ran on " + executors + " alone");
                }
                executors.addAll(runTasks(context, numbers));
            }
            String staged = context.getConf().get("spark.jobs.staged", "");
            if (!staged.isEmpty()) {
                for (String line : context.parallelize(numbers, TASKS).map(number -> opened(staged)).collect()) {
                    System.out.println("opened by " + line);
                }
            }
        }
        System.exit(Integer.parseInt(arguments[0]));
    }

    /** The executors that have had a task. */
    private static Set<String> runTasks(JavaSparkContext context, List<Integer> numbers) {
        Set<String> executors = new TreeSet<>();
        for (String line : context.parallelize(numbers, TASKS).map(Words::report).collect()) {
            System.out.println("seen by " + line);
            executors.add(line.substring(0, line.indexOf(':')));
        }
        return executors;
    }

    private static String report(int number) throws Exception {
        String file = Files.readString(Path.of(SparkFiles.get("words.txt"))).strip();
        String inArchive = Files.readString(Path.of(SparkFiles.get("books"), "page.txt")).strip();
        // Spark puts both into the working folder as well.
        String beside = Files.readString(Path.of("words.txt")).strip();
        return String.format("%s: %s %d, file %s, beside %s, archive %s",
            SparkEnv.get().executorId(), Greeting.of("task"), number, file, beside, inArchive);
    }

    private static String opened(String staged) throws Exception {
        String file = Files.readString(Path.of(staged, "words.txt")).strip();
        SparkEnv here = SparkEnv.get();
        return String.format("%s: file %s, by %s", here.executorId(), file, here.serializer().getClass().getName());
    }
}
