package cloakroom.jobs;

import org.apache.spark.SparkConf;
import org.apache.spark.serializer.JavaSerializer;

/** In a jar of its own. */
public final class Greeting {
    private Greeting() {}

    public static String of(String whom) {
        return "hello " + whom;
    }

    /** Executors need it before they have what the driver serves: it must be on their own class path. */
    public static final class Serializer extends JavaSerializer {
        public Serializer(SparkConf conf) {
            super(conf);
        }
    }
}
