package org.example;

import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.sql.SparkSession;

/** Counts on executors, with a class of another jar, and says what it sees of the files that were submitted with it. */
public final class App {
    private App() {}

    public static void main(String[] arguments) throws Exception {
        try (SparkSession spark = SparkSession.builder().getOrCreate()) {
            long count = spark.range(100).javaRDD().map(number -> Dep.twice(number)).reduce(Long::sum);
            System.out.println("counted " + count);
            for (String file : new String[] {"data.txt", "app.conf", "env/page.txt"}) {
                if (Files.exists(Path.of(file))) {
                    System.out.println(file + ": " + Files.readString(Path.of(file)).strip());
                }
            }
        }
    }
}
