package cloakroom.oldclient;

import okhttp3.RequestBody;
import okhttp3.ResponseBody;
import retrofit2.Call;
import retrofit2.http.GET;
import retrofit2.http.Header;
import retrofit2.http.Multipart;
import retrofit2.http.POST;
import retrofit2.http.Part;
import retrofit2.http.Path;
import retrofit2.http.Streaming;

/** The v0 protocol, as Retrofit describes it. */
interface StagingService {

    /** Retrofit writes the parts in the order of the parameters: the bundle before its owner. */
    @Multipart
    @POST("/api/v0/resources/")
    Call<Ticket> upload(
            @Part("resources") RequestBody resources, @Part("resourcesOwner") RequestBody resourcesOwner);

    /** The secret travels bare, with no scheme word before it. */
    @Streaming
    @GET("/api/v0/resources/{resourceId}")
    Call<ResponseBody> download(
            @Path("resourceId") String resourceId, @Header("Authorization") String resourceSecret);

    @GET("/api/v0/ping")
    Call<String> ping();

    /** Where the original's own Java client asked, by mistake. */
    @GET("/api/ping")
    Call<String> pingWithoutVersion();
}
